"""Pages that open without a network: one file each, with its charts, its colours and the code that draws them."""
