"""What sans-IO peers that gossip have in common: who is there, who wants what, which events came. No system."""
