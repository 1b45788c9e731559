"""Trains on the GPU, and fails unless the process sees exactly one."""
import ablate_run as run
import torch

assert torch.cuda.is_available(), "CUDA isn't available"
assert torch.cuda.device_count() == 1, f"{torch.cuda.device_count()} GPUs; expected 1"
torch.manual_seed(run.seed)
model = torch.nn.Linear(64, 1).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
inputs = torch.randn(256, 64, device="cuda")
targets = inputs.sum(1, keepdim=True)
for step in range(run.settings.steps):
    loss = (model(inputs) - targets).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    run.log({"loss": loss.item()}, step=step)
