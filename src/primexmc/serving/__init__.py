"""The way in over HTTP: a page for people and an interface for programs. Needs the extra [serve]."""
