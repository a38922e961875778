"""Pictures and pages from stored tables. Nothing outside this folder imports a plotting library."""
