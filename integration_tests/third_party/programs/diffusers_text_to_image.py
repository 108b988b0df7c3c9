"""A small latent diffusion with text, as diffusers' train_text_to_image does it: VAE, CLIP's text model, UNet."""
import diffusers
import torch
import transformers as hf
from counted import counted

vae = diffusers.AutoencoderKL(block_out_channels=(32, 64), down_block_types=("DownEncoderBlock2D",) * 2,
                              up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4, norm_num_groups=8).cuda().eval()
words = hf.CLIPTextModel(hf.CLIPTextConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
                                           intermediate_size=256)).cuda().eval()
unet = diffusers.UNet2DConditionModel(sample_size=32, block_out_channels=(64, 128), cross_attention_dim=128,
                                      down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                      up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), layers_per_block=1).cuda()
vae.requires_grad_(False)
words.requires_grad_(False)
noise_schedule = diffusers.DDPMScheduler()
optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4)
for i in range(5):
    image, ids = torch.randn(4, 3, 64, 64).cuda(), torch.randint(1000, (4, 77)).cuda()
    with counted(i):
        with torch.no_grad():
            latents = vae.encode(image).latent_dist.sample() * vae.config.scaling_factor
            hidden = words(ids)[0]
        noise = torch.randn_like(latents)
        steps = torch.randint(0, noise_schedule.config.num_train_timesteps, (4,), device="cuda").long()
        predicted = unet(noise_schedule.add_noise(latents, noise, steps), steps, hidden).sample
        loss = torch.nn.functional.mse_loss(predicted, noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("loss", loss.item())
