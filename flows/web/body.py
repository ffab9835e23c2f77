"""Reads the bodies of requests, up to a limit."""

from starlette.requests import Request

LONGEST = 64_000  # maximum bytes in a request's body
TOO_LONG = f"the request is longer than {LONGEST:,} bytes: shorten the text"


async def body_of(request: Request) -> bytes | None:
    """Return a request's body, or None if it is longer than `LONGEST`."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > LONGEST:
            return None
    return content
