// The served page: its views, with answers of the API.

import { useSource } from "./api.js";
import { incidents } from "./incidents.js";
import { live } from "./live.js";
import { losses } from "./losses.js";
import { overview } from "./overview.js";
import { playground } from "./playground.js";
import { property } from "./property.js";
import { start } from "./shell.js";
import { specification } from "./specification.js";
import { topics } from "./topics.js";

useSource(live);
start([
  ["overview", "Overview", overview],
  ["incidents", "Incidents", incidents],
  ["topics", "Topics", topics],
  ["losses", "Losses", losses],
  ["specification", "Specification", specification],
  ["playground", "Playground", playground],
], { property });
