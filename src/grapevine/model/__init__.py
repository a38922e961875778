"""Plain data: what is stored, how it is named and what may go wrong. Nothing here computes a result."""
