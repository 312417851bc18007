// The protocol's own client for JavaScript: tells what it lists, and lists again when it is told to.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const { NEXUS_URL, NEXUS_KEY, MODE } = process.env;
const say = (what) => console.log(JSON.stringify(what));
const onChanged = (error, tools) => say(error ? String(error) : tools.map((tool) => tool.name));

const client = new Client(
  { name: "listens", version: "1" },
  { versionNegotiation: { mode: MODE }, listChanged: { tools: { onChanged, debounceMs: 0 } } },
);
const requestInit = { headers: { Authorization: `Bearer ${NEXUS_KEY}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(`${NEXUS_URL}/mcp`), { requestInit }));
say((await client.listTools()).tools.map((tool) => tool.name));
process.stdin.on("end", () => process.exit(0)).resume();
