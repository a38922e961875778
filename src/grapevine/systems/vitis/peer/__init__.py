"""One peer of Vitis, message by message; `peer` puts the parts together."""
