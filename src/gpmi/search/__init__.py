"""The best point of a space under a policy: exact on a finite set, by a screen and a multi-start climb elsewhere."""
