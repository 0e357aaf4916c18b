"""More voices than one: what else than the prototypes speaks for a label, and how much it counts."""
