// iam_simulate.mjs FOLDER <requests.json: what AWS's policies decide, by @cloud-copilot/iam-simulate in FOLDER.
// Takes [{principal, action, resource, account, context, policy, resourcePolicy?}], answers ["Allowed" | "…Denied", …].
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const found = createRequire(`${process.argv[2]}/`).resolve("@cloud-copilot/iam-simulate");
const { runSimulation } = await import(pathToFileURL(found));

async function decide({ principal, action, resource, account, context, policy, resourcePolicy }) {
  const request = { principal, action, resource: { resource, accountId: account }, contextVariables: context };
  const simulation = {
    request,
    identityPolicies: [{ name: "role", policy }],
    serviceControlPolicies: [],
    resourceControlPolicies: [],
    ...(resourcePolicy ? { resourcePolicy } : {}),
  };
  const answer = await runSimulation(simulation, {});
  if (answer.resultType === "error") throw new Error(`${action} on ${resource}: ${JSON.stringify(answer.errors)}`);
  return answer.overallResult;
}

const requests = JSON.parse(await text(process.stdin));
const decisions = [];
for (const request of requests) decisions.push(await decide(request));
process.stdout.write(JSON.stringify(decisions));
