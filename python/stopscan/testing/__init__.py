"""Helpers for tests of engines and servers."""
