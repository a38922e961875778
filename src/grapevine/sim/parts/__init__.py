"""One network in parts: rounds of gossip by tasks that each hold the rows of some nodes, wherever they run.

Theory. In a round a node looks at its own row and at those of whom it contacts and who contact it, at nothing else; who
that is follows from its own row and the seed. So the nodes are split into ranges (`split`), and a round is five moves
of every part, with four deliveries of cells between them (`moves`):

1. ask for samples: send the caches of own nodes to the parts of their partners;
2. answer: send the caches of the nodes that were asked for back;
3. merge caches, and ask for views: send rows to the parts of the exchange's partners;
4. answer: send the rows of the nodes that were asked for back;
5. choose links, and store the new rows.

A part then has its own rows and, behind them, those that came; the kernels are those of a whole network (`Views`).

Invariants:
1. A move is a function of stored rows, the cells that came and the seed. Done again, by whomever, it writes and sends
   the same bytes; so a lost task is repeated, and nothing has to be undone.
2. Rows are stored under a new name and renamed when complete (`files`). What a round began with stays until the next
   one has been completed and noted: that note (`files.note`) is what a killed run goes on from.
3. Cells arrive in no order, and are taken in that of their sources. Callers of a node therefore stand in ascending
   order, as they do in a whole network, and all links are equal to the last bit.

What needs the whole network at once (joins that look their place up, Magnet's walks, elections under churn,
measurements) is done where the run was started, on rows that are fetched for it (`network`).
"""
