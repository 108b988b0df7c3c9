def is_grad_enabled():
    return False
