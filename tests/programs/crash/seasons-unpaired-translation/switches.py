def trainable(modules, flag):
    for module in modules:
        for p in module.parameters():
            p.requires_grad = flag
