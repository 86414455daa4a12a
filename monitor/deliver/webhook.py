"""Events as POST requests, signed as Standard Webhooks prescribe (https://www.standardwebhooks.com/)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256

from standardwebhooks.webhooks import Webhook

from monitor.config import WebhookAlert
from monitor.core.http import describe, freshness
from monitor.deliver.sinks import PlainSink, Receipt
from monitor.fetch import Fetcher, FetchPolicy
from monitor.store.events import Pending

BATCH_BYTES = 1_000_000
"""Of bodies in one request, about: receivers bound what they take."""


class WebhookSink(PlainSink):
    """One endpoint. With `batch` above 1, several events are one request: a CloudEvents batch, a JSON array."""

    at_once = 8

    def __init__(self, alert: WebhookAlert, fetcher: Fetcher, policy: FetchPolicy) -> None:
        self.name = alert.name
        self.mixed = alert.batch > 1
        self._batch = alert.batch
        self._url = alert.url
        self._signers = [Webhook(secret.get_secret_value()) for secret in alert.secrets]
        self._fetcher = fetcher
        self._policy = policy

    def takes(self, waiting: int, now: float) -> int:
        """As many as the configuration allows."""
        return min(waiting, self._batch)

    async def send(self, items: Sequence[Pending], now: float) -> Receipt:
        """POST events. 2xx is delivered, 410 gone, all else failed; redirects are not followed."""
        if self._batch > 1:
            kind, number = "application/cloudevents-batch+json", _batch_id(items)
            body = f"[{','.join(item.body for item in items)}]"
        else:
            kind, number, body = "application/cloudevents+json", items[0].id, items[0].body
        headers = {"content-type": kind, "webhook-id": number, "webhook-timestamp": str(int(now))}
        if self._signers:
            moment = datetime.fromtimestamp(int(now), UTC)
            headers["webhook-signature"] = " ".join(signer.sign(number, moment, body) for signer in self._signers)
        reply = await self._fetcher.post(self._url, content=body.encode(), headers=headers, policy=self._policy)
        if reply.status is not None and 200 <= reply.status < 300:
            return Receipt("delivered", answer=f"HTTP {reply.status} in {1000 * reply.seconds:.0f} ms")
        if reply.status == 410:
            return Receipt("gone", "answered 410 Gone: the endpoint wants no more events")
        retry_at = freshness(reply, datetime.fromtimestamp(now, UTC)).retry_at
        return Receipt("failed", describe(reply), retry_at.timestamp() if retry_at else None)


def _batch_id(items: Sequence[Pending]) -> str:
    """The same for the same events: a request that is repeated as it was can be known by it."""
    return "batch_" + sha256(" ".join(item.id for item in items).encode()).hexdigest()[:26]
