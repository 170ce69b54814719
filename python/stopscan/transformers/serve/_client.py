from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from anyio import CancelScope

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class EndsWithClient:
    """Cancels a request whose client goes before the answer begins; transformers watches the clients of streams only.

    It is ASGI middleware. Once the body is complete, all that can still come from a client is that it goes.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False
        gone: asyncio.Task[Message] | None = None

        async def wait() -> Message:
            while (message := await receive())["type"] != "http.disconnect":
                pass
            if not begun:
                answering.cancel()
            return message

        async def received() -> Message:
            nonlocal gone
            if gone is not None:
                return await asyncio.shield(gone)
            message = await receive()
            if not message.get("more_body", False):
                gone = asyncio.create_task(wait())
            return message

        async def sent(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        with CancelScope() as answering:
            try:
                await self._app(scope, received, sent)
            finally:
                if gone is not None:
                    gone.cancel()
