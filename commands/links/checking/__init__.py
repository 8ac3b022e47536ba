"""Tests whether the bridge would work: connections, rights and queues, one by one, and how to correct each error."""
