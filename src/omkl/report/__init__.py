"""HTML reports that open without a network: one file each, with its charts and the code that draws them."""
