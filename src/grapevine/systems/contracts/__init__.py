"""What a facet of a system owes: `rounds` (with `connections` and `designs` for two families), `peer` and `live`."""
