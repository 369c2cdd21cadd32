"""Makes the table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = ()
    operations = (
        migrations.CreateModel(
            name="OutboxRow",
            fields=[
                ("seq", models.BigAutoField(primary_key=True, serialize=False)),
                ("message_id", models.CharField(max_length=1024)),
                ("queue", models.CharField(max_length=1024)),
                ("line", models.CharField(max_length=32)),
                ("message", models.TextField()),
            ],
            options={
                "db_table": "dq_outbox",
                "indexes": [models.Index(fields=("line", "seq"), name="dq_outbox_line")],
            },
        ),
    )
