"""primexmc: extreme multi-label classification by label prototypes."""
