"""Test servers that send the kit's texts without an engine. Each is right, or has a defect that the kit must find."""
