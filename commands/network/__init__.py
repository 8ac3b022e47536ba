"""Several queue managers as one network: proxy subscriptions, publications that are sent on, scope, clusters."""
