"""The doctor: it watches a training program and explains why gradients do not flow as meant."""
