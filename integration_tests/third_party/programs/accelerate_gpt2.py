"""GPT-2 from a configuration by accelerate, with accumulated gradients, clipping and a schedule."""
import accelerate
import torch
import transformers as hf
from counted import counted

accelerator = accelerate.Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
accelerate.utils.set_seed(1)
model = hf.GPT2LMHeadModel(hf.GPT2Config(n_embd=256, n_layer=4, n_head=4, vocab_size=8192))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
data = torch.utils.data.TensorDataset(torch.randint(8192, (48, 128)))
loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
schedule = hf.get_cosine_schedule_with_warmup(optimizer, 2, 12)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
rows, total = iter(loader), 0.0
for i in range(6):
    with counted(i):
        for _ in range(2):
            ids, = next(rows)
            with accelerator.accumulate(model):
                loss = model(ids, labels=ids).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            total += accelerator.gather(loss.detach()).mean().item()
print("loss", total / 12)
