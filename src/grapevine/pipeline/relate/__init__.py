"""What the rows of raw formats mean, and the tables that are made from them."""
