"""layer_norm and rms_norm with their gradients."""
