"""The events of the official clients, which are objects: read, cut, and made anew."""
