"""How fast it is: the machine's floor, every algorithm, the NumPy rounds and the peers, in one run on one machine."""
