"""Test servers that send the kit's texts without an engine: right ones, and a wrong one for each defect to find."""
