"""Trains small models whose control flow depends on values: all_values.py DEVICE NAME... prints the losses of each as
lines "NAME step LOSS", and what the program decided as lines "NAME did WORDS".

Numbers come from the CPU's generator, so that both devices have the same.
"""
import contextlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = sys.argv[1]


def steps(name, model, data, optimizer, count=6, loss_of=F.cross_entropy, forward=None, scaler=None):
    """Trains for `count` steps, returns the losses."""
    losses = []
    for step in range(count):
        inputs, wanted = data
        optimizer.zero_grad()
        loss = loss_of((forward or model)(inputs), wanted)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        losses.append(loss.item())
        print(name, step, repr(loss.item()), flush=True)
    return losses


def on_device(*tensors):
    return [tensor.to(DEVICE) for tensor in tensors]


def convolutions():
    """Convolution, batch normalization with its running statistics, pooling, dropout of nothing, a decaying rate, and a
    loop that ends by the loss."""
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1, groups=4, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.ConvTranspose2d(32, 8, 2, stride=2), nn.Flatten(), nn.Dropout(0.0), nn.Linear(8 * 64, 10)).to(DEVICE)
    data = on_device(torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    steps("convolutions", model, data, optimizer)
    rounds, loss = 0, torch.tensor(10.0)
    while loss > 0.7 and rounds < 40:  # as many steps as that takes
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data[0]), data[1])
        loss.backward()
        optimizer.step()
        rounds += 1
    print("convolutions did", rounds)
    model.eval()
    with torch.no_grad():
        scores = model(data[0])
    print("convolutions did", scores.argmax(1).tolist())
    print("convolutions 0", repr(model[1].running_var.sum().item()))
    print("convolutions 1", repr(scores.std().item()))


def dropout():
    """The numbers that are drawn differ by device: the loss falls, and as many are dropped as should be."""
    model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 4)).to(DEVICE)
    data = on_device(torch.randn(64, 32), torch.randint(0, 4, (64,)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    before = torch.get_rng_state()
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data[0]), data[1])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    ones = torch.ones(1000, 100, device=DEVICE, requires_grad=True)
    dropped = F.dropout(ones, 0.3)
    dropped.sum().backward()
    same = bool((ones.grad == dropped).all())
    share = (dropped == 0).float().mean().item()
    if DEVICE == "cuda":
        print("dropout did", bool(losses[-1] < 0.5 * losses[0]), 0.29 < share < 0.31, same,
              bool(torch.equal(before, torch.get_rng_state())))
    else:
        print("dropout did True True True True")


class Gpt(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.mask = mask
        self.tokens, self.places = nn.Embedding(64, 48), nn.Embedding(33, 48)
        self.norms = nn.ModuleList(nn.LayerNorm(48) for _ in range(4))
        self.qkv = nn.ModuleList(nn.Linear(48, 144) for _ in range(2))
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 48)) for _ in range(2))
        self.head = nn.Linear(48, 64, bias=False)

    def forward(self, tokens):
        batch, length = tokens.shape
        x = self.tokens(tokens) + self.places(torch.arange(length, device=tokens.device))
        for i in range(2):
            q, k, v = (part.view(batch, length, 3, 16).transpose(1, 2) for part in self.qkv[i](self.norms[i](x)).chunk(3, -1))
            if self.mask:
                bias = torch.zeros(length, length, device=q.device, dtype=q.dtype)
                bias.masked_fill_(torch.ones(length, length, device=q.device).triu(1).bool(), float("-inf"))
                out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
            else:
                out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + out.transpose(1, 2).reshape(batch, length, 48)
            x = x + self.mlp[i](self.norms[2 + i](x))
        return self.head(x)


def train_gpt(name, mask, half):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    model = Gpt(mask).to(DEVICE)
    tokens, = on_device(torch.randint(0, 64, (4, 33)))
    fused = {"fused": True} if DEVICE == "cuda" else {}
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, **fused)
    # Attention in bfloat16 alone is enough for CUDA's flash attention.
    precision = torch.autocast(DEVICE, torch.bfloat16) if half else contextlib.nullcontext()
    backend = {"gpt_flash": SDPBackend.FLASH_ATTENTION, "gpt_efficient": SDPBackend.EFFICIENT_ATTENTION,
               "gpt_masked": SDPBackend.EFFICIENT_ATTENTION, "gpt_math": SDPBackend.MATH}[name]

    def forward(inputs):
        with precision, sdpa_kernel(backend) if DEVICE == "cuda" else contextlib.nullcontext():
            return model(inputs).float()

    steps(name, model, (tokens[:, :-1], tokens[:, 1:]), optimizer, forward=forward,
          loss_of=lambda scores, wanted: F.cross_entropy(scores.flatten(0, 1), wanted.flatten()))
    with torch.no_grad():
        text = tokens[:1, :4]
        for _ in range(6):  # greedy
            text = torch.cat([text, forward(text)[:, -1].argmax(-1, keepdim=True)], 1)
    print(name, "did", text.tolist())


def gpt_flash():
    train_gpt("gpt_flash", False, True)


def gpt_efficient():
    train_gpt("gpt_efficient", False, False)


def gpt_masked():
    train_gpt("gpt_masked", True, False)


def gpt_math():
    train_gpt("gpt_math", True, False)


def gpt_dropped():
    """Attention with a dropout: each draw of it has the derivatives of what it gives."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    held = []
    for backend, dtype in ((SDPBackend.EFFICIENT_ATTENTION, torch.float32), (SDPBackend.FLASH_ATTENTION, torch.bfloat16)):
        q, k, v, direction, weights = on_device(*(torch.randn(2, 3, 16, 8) for _ in range(5)))
        q.requires_grad_(), k.requires_grad_(), v.requires_grad_()

        def loss_of(q, k):
            torch.cuda.manual_seed(3)  # the same draw
            with sdpa_kernel(backend):
                out = F.scaled_dot_product_attention(q.to(dtype), k.to(dtype), v.to(dtype), dropout_p=0.4, is_causal=True)
            return (out.float() * weights).sum(), (out == 0).float().mean().item()

        if DEVICE == "cpu":
            held += [True] * 5
            continue
        loss, zeros = loss_of(q, k)
        loss.backward()
        with torch.no_grad():
            numeric = [(loss_of(*plus)[0] - loss_of(*minus)[0]).item() / 0.2
                       for plus, minus in (((q + 0.1 * direction, k), (q - 0.1 * direction, k)),
                                           ((q, k + 0.1 * direction), (q, k - 0.1 * direction)))]
        close = [abs(expected - (of.grad * direction).sum().item()) < 0.1 * abs(expected) + 0.1
                 for expected, of in zip(numeric, (q, k))]
        linear = abs((v * v.grad).sum().item() - loss.item()) < 0.02 * (abs(loss.item()) + 1)
        held += [*close, linear, 0 < zeros < 0.1, loss_of(q, k)[0].item() == loss.item()]
    print("gpt_dropped did", held)


def norms():
    """Norms, activations, and attention whose added bias is learned."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.out_norm = nn.RMSNorm(32), nn.LayerNorm((12, 32))
            self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 5)
            self.bias = nn.Parameter(torch.randn(1, 4, 12, 12))

        def forward(self, x):
            q, k, v = self.qkv(self.norm(x)).view(-1, 12, 3, 4, 8).permute(2, 0, 3, 1, 4)
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias.expand(len(x), -1, -1, -1))
            return self.out(F.logsigmoid(self.out_norm(x + out.transpose(1, 2).flatten(2)))).mean(1)

    model = Block().to(DEVICE)
    data = on_device(torch.randn(8, 12, 32), torch.randint(0, 5, (8,)))
    steps("norms", model, data, torch.optim.RMSprop(model.parameters(), lr=1e-3), count=5)


def recurrent():
    """cuDNN's recurrent layers: two directions, two layers, a projection, states that are given, and generated text."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 8)
            self.lstm = nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True)
            self.gru = nn.GRU(32, 12, batch_first=True)
            self.rnn = nn.RNN(12, 12, bias=False, batch_first=True)
            self.small = nn.LSTM(12, 12, proj_size=6, batch_first=True)
            self.state = nn.Parameter(torch.randn(1, 1, 12))
            self.out = nn.Linear(6, 20)

        def forward(self, tokens):
            x, (hidden, cell) = self.lstm(self.embed(tokens))
            x, last = self.gru(x, self.state.expand(-1, len(x), -1).contiguous())
            x = self.small(self.rnn(x)[0])[0]
            return self.out(x) + hidden.mean() + cell.mean() + last.mean()

    model = Model().to(DEVICE)
    tokens, = on_device(torch.randint(0, 20, (4, 11)))
    steps("recurrent", model, (tokens[:, :-1], tokens[:, 1:]), torch.optim.Adam(model.parameters(), lr=0.02),
          loss_of=lambda scores, wanted: F.cross_entropy(scores.flatten(0, 1), wanted.flatten()))
    with torch.no_grad():
        print("recurrent did", model(tokens)[:, -1].argmax(-1).tolist())


def halves():
    """Automatic mixed precision with a gradient scaler whose first scale is too large."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(),
                          nn.Linear(8 * 256, 10)).to(DEVICE)
    data = on_device(torch.randn(8, 3, 16, 16), torch.randint(0, 10, (8,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=2.0**24 if DEVICE == "cuda" else 1.0)

    def forward(inputs):
        with torch.autocast(DEVICE, torch.float16):
            return model(inputs)

    # The scaler skips steps until its scale fits, which the CPU's run has from the beginning.
    if DEVICE == "cuda":
        while True:
            scaler.scale(F.cross_entropy(forward(data[0]), data[1])).backward()
            scaler.unscale_(optimizer)
            found = any(not bool(torch.isfinite(p.grad).all()) for p in model.parameters())
            if not found:
                break
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        scaler.update()
        print("halves did", 1 < scaler.get_scale() < 2.0**24)
    else:
        print("halves did True")
    model[1].reset_running_stats()
    steps("halves", model, data, optimizer, scaler=scaler if DEVICE == "cuda" else None)


def unet():
    """Group normalization, skips, upsampling, in channels_last."""
    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU())
            self.inner = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.GroupNorm(4, 32), nn.SiLU())
            self.up = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(32, 16, 1))
            self.out = nn.Conv2d(32, 3, 3, padding=1)

        def forward(self, x):
            first = self.down(x)
            return self.out(torch.cat([first, self.up(self.inner(first))], 1))

    model = Unet().to(DEVICE, memory_format=torch.channels_last)
    image = torch.randn(4, 3, 24, 24).to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = steps("unet", model, (image + 0.1, image), optimizer, loss_of=F.mse_loss)
    best, patience = losses[0], 0
    for _ in range(20):  # early stopping
        optimizer.zero_grad()
        loss = F.mse_loss(model(image + 0.1), image)
        loss.backward()
        optimizer.step()
        if loss.item() < best * 0.97:
            best, patience = loss.item(), 0
        else:
            patience += 1
        if patience == 3:
            break
    print("unet did", patience)


def signals():
    """Fourier transforms, complex numbers and their conjugates, sorting, scatter and index operators of large tensors."""
    x = torch.randn(64, 1024).to(DEVICE).requires_grad_()
    spectrum = torch.fft.rfft(x)
    energy = (spectrum * spectrum.conj()).real.sum(1)
    loss = torch.fft.irfft(spectrum * spectrum.abs().mean(), n=1024).pow(2).mean() + energy.mean()
    loss.backward()
    print("signals 0", repr(loss.item()))
    print("signals 1", repr(x.grad.norm().item()))
    order = x.detach().flatten().sort(descending=True)
    print("signals did", order.indices[:5].tolist(), torch.unique((x * 2).long()).tolist(), (x > 2).nonzero().shape[0])
    table = torch.zeros(100, 64, device=DEVICE)
    table.index_add_(0, torch.arange(6400, device=DEVICE) % 100, x.detach().reshape(-1, 64)[:100].repeat(64, 1))
    print("signals 2", repr(table.std().item()))
    parts = torch.empty(300, 400, device=DEVICE)
    parts[:, ::2], parts[:, 1::2] = 1, 2
    print("signals did", parts.sum().item(), bool((parts.half().sum(1) == 600).all()),
          torch.softmax(parts.half(), 1, dtype=torch.float32).sum().round().item())


for name in sys.argv[2:]:
    torch.manual_seed(7)
    torch.cuda.manual_seed_all(7)
    globals()[name]()
