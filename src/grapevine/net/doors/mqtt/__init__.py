"""The MQTT door: to clients of MQTT 5 and 3.1.1, their node is the broker that they know.

From the wire inwards: `texts`, `version3` and `codec` make packets of bytes; `filters` are the rules of topic names;
`message` is what an event carries for MQTT clients beside its payload; `outgoing` and `incoming` are who owes whom an
acknowledgement; `session` is what outlives a connection, and `session_file` keeps it; `feed` brings a topic's events to
a session; `directory` knows topics by name, and what they retain; `connection` speaks with one client; `door` listens.

All of them but `feed`, `directory`, `connection`, `session_file` and `door` do no I/O. What MQTT asks for and the door
does otherwise is listed in docs/guide/mqtt.md.
"""
