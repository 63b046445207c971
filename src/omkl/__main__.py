"""The command line as `python -m omkl`."""

from omkl.cli import main

if __name__ == "__main__":
    main()
