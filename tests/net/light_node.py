"""A program for a light installation: two nodes exchange an event; prints as JSON what it imported (`test_light`)."""

import asyncio
import json
import sys


async def exchange() -> str:
    from grapevine.net import Node

    system = sys.argv[1] if len(sys.argv) > 1 else "vitis"
    async with Node.open("127.0.0.1:0", system=system) as one:
        at = "{}:{}".format(*one.endpoint)
        async with Node.open("127.0.0.1:0", [at], system=system) as other, other.subscribe("weather") as events:
            await one.publish("weather", b"-3 C", timeout=60)
            async for event in events:
                assert not one.stats()["failures"] and not other.stats()["failures"]
                return event.payload.decode()  # type: ignore[union-attr]
    raise AssertionError("the subscription ended before the event came")


received = asyncio.run(exchange())
print(json.dumps({"received": received, "imported": sorted({name.partition(".")[0] for name in sys.modules})}))
