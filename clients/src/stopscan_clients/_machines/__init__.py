"""What each API's events mean: a machine on parsed JSON that knows no bytes, no connections and no classes."""
