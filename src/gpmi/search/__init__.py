"""The best point of a space under a policy: exact on finite sets, screen and climb on the rest."""
