"""A mail server for tests: aiosmtpd, with failures that are ordered, and mails read by Python's own parser.

    smtp.py serve OPTIONS   options as JSON; orders come by standard input, a JSON object a line, and end with it
    smtp.py parse FILE      prints what a file has
"""

import asyncio
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, syntax


def parsed(content):
    """A message as JSON can have it; a defect that the parser finds in its form is named."""
    message = email.message_from_bytes(content, policy=email.policy.default)
    parts, defects = [], [type(defect).__name__ for defect in message.defects]
    for part in message.walk():
        defects += [type(defect).__name__ for defect in part.defects]
        for _, value in part.items():
            defects += [type(defect).__name__ for defect in getattr(value, "defects", ())]
        if not part.is_multipart():
            text = part.get_content()
            text = text if isinstance(text, str) else text.decode()
            parts.append({"type": part.get_content_type(), "name": part.get_filename(), "text": text})
    headers = [[name.lower(), str(value)] for name, value in message.items()]
    return {"headers": headers, "parts": parts, "defects": defects, "is_ascii": content.isascii()}


def say(value):
    print(json.dumps(value), flush=True)


class Handler:
    def __init__(self, options):
        self.options = options
        # What is refused next: [command, how often, answer]; "cut" for an answer ends the connection.
        self.faults = []
        self.refused = {}

    def fault(self, command):
        for fault in self.faults:
            if fault[0] == command and fault[1] > 0:
                fault[1] -= 1
                return fault[2]
        return None

    async def handle_MAIL(self, server, session, envelope, address, options):
        envelope.mail_from = address
        return self.fault("MAIL") or "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        answer = self.refused.get(address) or self.fault("RCPT")
        if answer:
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        answer = self.fault("DATA")
        if answer and answer != "cut":
            return answer
        mail = parsed(envelope.content)
        mail |= {"from": envelope.mail_from, "to": envelope.rcpt_tos, "tls": session.ssl is not None}
        mail["user"] = session.auth_data.decode() if session.authenticated else None
        say({"mail": mail})
        if answer == "cut":
            # It has the mail, and the sender gets no answer.
            server.transport.abort()
        return "250 OK"


class Server(SMTP):
    @syntax("DATA")
    async def smtp_DATA(self, arg):
        if self.event_handler.fault("BODY") != "cut":
            return await super().smtp_DATA(arg)
        await self.push("354 go on")
        await self._reader.readline()
        self.transport.abort()


async def serve(options):
    handler, loop = Handler(options), asyncio.get_running_loop()
    context = None
    if options.get("cert"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options["cert"], options["key"])

    def authenticate(server, session, envelope, mechanism, data):
        is_right = [data.login.decode(), data.password.decode()] == options["login"]
        return AuthResult(success=is_right, handled=False, auth_data=data.login if is_right else None)

    implicit = options.get("implicit", False)
    settings = {"hostname": "mail.example", "loop": loop, "data_size_limit": options.get("limit", 1 << 25)}
    if context and not implicit:
        settings |= {"tls_context": context, "require_starttls": True}
    if options.get("login"):
        settings |= {"authenticator": authenticate, "auth_required": True, "auth_require_tls": not implicit}

    factory = lambda: Server(handler, **settings)
    listening = await loop.create_server(
        factory, "127.0.0.1", options["port"], ssl=context if implicit else None, reuse_address=True
    )
    say({"port": listening.sockets[0].getsockname()[1]})
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        order = json.loads(line)
        handler.faults = order.get("faults", [])
        handler.refused = order.get("refused", {})
        say({"done": True})


if sys.argv[1] == "parse":
    with open(sys.argv[2], "rb") as file:
        say(parsed(file.read()))
else:
    asyncio.run(serve(json.loads(sys.argv[2])))
