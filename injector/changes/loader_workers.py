"""Processes of their own make the batches; loader-workers=N says how many"""
# write: num_workers=4, for the DataLoader
number = int(value) if value else max(1, min(4, len(os.sched_getaffinity(0))))


def why_not(loader, arguments):
    return "it has {} already".format(arguments["num_workers"]) if arguments.get("num_workers") and not value else ""


option_change("num_workers", number, [torch.utils.data.DataLoader], why_not,
              framework=("TrainingArguments", "dataloader_num_workers", number))
