"""Errors with one base. Each message is one sentence: what was given, what is allowed, what to do."""


class GrapevineError(Exception):
    """Base of every error that Grapevine raises on purpose. One that is neither of the two below is our failure; the
    command line exits with 1."""


class UsageError(GrapevineError):
    """The caller erred: a wrong path, parameter or input. The command line exits with 2."""


class PeerError(GrapevineError):
    """The remote erred: it sent what is no message, or is not who it should be. Counted, dropped, never fatal."""
