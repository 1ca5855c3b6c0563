"""uvicorn's protocols, hardened: what a client can make the process hold is bounded."""
