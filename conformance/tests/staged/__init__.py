"""A right server of the kit's model without an engine, and a wrong one for each defect that the kit should find."""
