"""The edge to clients: listener, connections and their limits. Rules live elsewhere."""
