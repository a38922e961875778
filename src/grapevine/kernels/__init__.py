"""Compiled functions on bare arrays. They import nothing of ours and know nothing of files, Spark or systems."""
