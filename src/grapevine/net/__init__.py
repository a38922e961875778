"""A node on real sockets: what lies between a sans-IO peer and the machine it runs on. The only user of asyncio.

`wire` makes frames of messages, `identity` says who is at the other end of a connection, `store` keeps events,
`diary` what happened.
"""
