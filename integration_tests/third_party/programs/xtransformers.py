"""x-transformers' decoder with rotary positions, trained as its README does."""
import torch
from counted import counted
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

model = AutoregressiveWrapper(TransformerWrapper(
    num_tokens=1024, max_seq_len=256, attn_layers=Decoder(dim=256, depth=3, heads=4, rotary_pos_emb=True, attn_flash=True)))
model = model.cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for i in range(5):
    rows = torch.randint(1024, (8, 257)).cuda()
    with counted(i):
        loss = model(rows)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
    print("loss", loss.item())
