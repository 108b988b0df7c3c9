"""An unconditional DDPM by diffusers: UNet2DModel, DDPMScheduler, EMA, AdamW, as its training script does it."""
import diffusers
import torch
from counted import counted
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel

model = diffusers.UNet2DModel(sample_size=64, block_out_channels=(64, 128, 256), layers_per_block=1,
                              down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
                              up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D")).cuda()
noise_schedule = diffusers.DDPMScheduler(num_train_timesteps=1000)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
schedule = get_cosine_schedule_with_warmup(optimizer, 2, 10)
ema = EMAModel(model.parameters())
for i in range(5):
    clean = torch.randn(8, 3, 64, 64).cuda()
    with counted(i):
        noise = torch.randn_like(clean)
        steps = torch.randint(0, 1000, (8,), device="cuda")
        noisy = noise_schedule.add_noise(clean, noise, steps)
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.mse_loss(model(noisy, steps).sample.float(), noise)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        ema.step(model.parameters())
    print("loss", loss.item())
