"""Which system for this trace, with how many links, and at what cost: from what a user brings to an answer.

source → a workload's folder · candidates → an experiment · costs → units that people pay · judgement → sentences
"""
