"""specc: from a Model Spec to kernels, with evidence."""
