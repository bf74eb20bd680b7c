"""The one door from a box to the world: keeps the keys, meters the money, logs the hosts."""
