"""How events stand in the bytes of a connection, and a body cut: bytes in, bytes out."""
