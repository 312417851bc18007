"""Which paths each role reads and writes (Spec: files 1, files 2).

r read, w write, - neither. A read-only path is r-; QA's write_file reaches tests/ and
reports/qa/ only. Whoever may write may read.
"""

from tests.oracle.org import AGENTS, BACKEND, CEO, DEVOPS, FRONTEND, HR, IT, PM, QA, RESEARCH

# Without any contract. A path into one's own clone (workspace/) is one of the repository, too; no
# path names a judged commit or MEMORY.md (Spec: files 20).
PLAIN = """
path                                        CEO IT  HR  PM  BE  FE  DO  QA  RE
agents/ceo/notes/decision.md                rw  --  --  --  --  --  --  --  --
agents/it_manager/notes.md                  --  rw  --  --  --  --  --  --  --
agents/hr_manager/notes.md                  --  --  rw  --  --  --  --  --  --
agents/product_manager/notes.md             --  --  --  rw  --  --  --  --  --
agents/backend_worker/draft.py              --  --  --  --  rw  --  --  --  --
agents/backend_worker/MEMORY.md             --  --  --  --  --  --  --  --  --
agents/backend_worker/judged/1/tests/a.py   --  --  --  --  --  --  --  --  --
agents/backend_worker/workspace/app.py      --  r-  --  --  --  --  --  --  --
agents/backend_worker/workspace/tests/a.py  --  r-  --  --  rw  --  --  --  --
agents/frontend_worker/workspace/ui.ts      --  r-  --  --  --  --  --  --  --
agents/devops_worker/workspace/plan.md      --  r-  --  --  --  --  --  --  --
agents/devops_worker/workspace/docker/a     --  r-  --  --  --  --  rw  --  --
agents/qa_worker/workspace/log.txt          --  r-  --  --  --  --  --  --  --
agents/qa_worker/judged/1/src/app.py        --  --  --  --  --  --  --  --  --
agents/qa_worker/notes.md                   --  --  --  --  --  --  --  r-  --
agents/research_worker/workspace/notes.md   --  --  --  --  --  --  --  --  --
agents/research_worker/notes.md             --  --  --  --  --  --  --  --  rw
agents/backend_worker2/draft.py             --  --  --  --  --  --  --  --  --
agents/frontend_worker-evil/ui.ts           --  --  --  --  --  --  --  --  --
agents/ceo2/notes/decision.md               --  --  --  --  --  --  --  --  --
agents/backend_worker/workspace-evil/app.py --  --  --  --  rw  --  --  --  --
company/contracts/CON-1.md                  r-  r-  --  r-  --  --  --  --  --
company/contracts-old/CON-1.md              --  --  --  --  --  --  --  --  --
company/org.yaml                            r-  --  rw  --  --  --  --  --  --
company/org.yaml.bak                        --  --  --  --  --  --  --  --  --
company/chain-of-command.yaml               --  --  rw  --  --  --  --  --  --
company/agents/backend_worker.md            --  --  rw  --  --  --  --  --  --
company/departments/it.yaml                 --  --  rw  --  --  --  --  --  --
reports/tech/week.md                        r-  r-  --  --  --  --  --  --  --
reports/technology/week.md                  r-  --  --  --  --  --  --  --  --
reports/hr/week.md                          r-  --  r-  --  --  --  --  --  --
reports/product/week.md                     r-  --  --  r-  --  --  --  --  --
reports/qa/week.md                          r-  --  --  --  --  --  --  rw  --
reports/qa-evil/week.md                     r-  --  --  --  --  --  --  --  --
reports/research/market.md                  r-  --  --  --  --  --  --  --  rw
reports/cost.md                             r-  --  --  --  --  --  --  --  --
reports-evil/tech/week.md                   --  --  --  --  --  --  --  --  --
equipment/tools.yaml                        --  rw  --  --  --  --  r-  --  --
equipment2/tools.yaml                       --  --  --  --  --  --  --  --  --
docs/guide.md                               --  --  --  --  --  --  --  --  r-
docs/prd/login.md                           --  --  --  rw  --  r-  --  --  r-
docs/prd-old/login.md                       --  --  --  --  --  --  --  --  r-
backlog/items.yaml                          --  --  --  rw  --  --  --  --  --
backlog.yaml                                --  --  --  --  --  --  --  --  --
tests/test_api.py                           --  --  --  --  rw  --  --  rw  --
tests/frontend/ui.test.ts                   --  --  --  --  rw  rw  --  rw  --
tests/frontend-evil/ui.test.ts              --  --  --  --  rw  --  --  rw  --
tests2/test_api.py                          --  --  --  --  --  --  --  --  --
docker/compose.prod.yml                     --  --  --  --  --  --  rw  --  --
docker-compose.yml                          --  --  --  --  --  --  rw  --  --
docker-compose.yml.bak                      --  --  --  --  --  --  --  --  --
.github/workflows/ci.yml                    --  --  --  --  --  --  rw  --  --
.github/CODEOWNERS                          --  --  --  --  --  --  --  --  --
logs/app.log                                --  --  --  --  --  --  r-  --  --
src/feature/app.py                          --  --  --  --  --  --  --  --  --
src/main.py                                 --  --  --  --  --  --  --  --  --
.env                                        --  --  --  --  --  --  --  --  --
tests/.env                                  --  --  --  --  --  --  --  --  --
tests/frontend/.env.local                   --  --  --  --  --  --  --  --  --
docker/.env                                 --  --  --  --  --  --  --  --  --
docs/prd/.env                               --  --  --  --  --  --  --  --  --
company/agents/.env                         --  --  --  --  --  --  --  --  --
reports/tls.pem                             --  --  --  --  --  --  --  --  --
equipment/credentials.json                  --  --  --  --  --  --  --  --  --
agents/backend_worker/id_rsa                --  --  --  --  --  --  --  --  --
agents/ceo/notes/server.key                 --  --  --  --  --  --  --  --  --
reports/tech/../hr/week.md                  --  --  --  --  --  --  --  --  --
tests/../src/main.py                        --  --  --  --  --  --  --  --  --
./tests/test_api.py                         --  --  --  --  --  --  --  --  --
tests//test_api.py                          --  --  --  --  --  --  --  --  --
/etc/passwd                                 --  --  --  --  --  --  --  --  --
"""

# With a contract in progress whose workspace_scope is SCOPE (Spec: files 1). IT reads what
# is worked on. DevOps: its list of paths names no contract's. QA reads.
SCOPE = ("src/feature/",)
UNDER_CONTRACT = """
path                                        CEO IT  HR  PM  BE  FE  DO  QA  RE
src/feature/app.py                          --  r-  --  --  rw  rw  --  r-  --
src/feature/deep/er/app.py                  --  r-  --  --  rw  rw  --  r-  --
src/feature/tests/test_app.py               --  r-  --  --  rw  rw  --  r-  --
agents/backend_worker/workspace/src/feature/app.py -- r- -- -- rw -- -- -- --
agents/qa_worker/workspace/src/feature/app.py      -- r- -- -- -- -- -- r- --
agents/qa_worker/judged/1/src/feature/app.py       -- -- -- -- -- -- -- -- --
src/feature-evil/app.py                     --  --  --  --  --  --  --  --  --
src/features.py                             --  --  --  --  --  --  --  --  --
src/main.py                                 --  --  --  --  --  --  --  --  --
other/src/feature/app.py                    --  --  --  --  --  --  --  --  --
src/feature/.env                            --  --  --  --  --  --  --  --  --
src/feature/.env.production                 --  --  --  --  --  --  --  --  --
src/feature/deep/.env                       --  --  --  --  --  --  --  --  --
src/feature/.env/inside.txt                 --  --  --  --  --  --  --  --  --
src/feature/server.pem                      --  --  --  --  --  --  --  --  --
src/feature/tls.key                         --  --  --  --  --  --  --  --  --
src/feature/id_rsa                          --  --  --  --  --  --  --  --  --
src/feature/credentials.json                --  --  --  --  --  --  --  --  --
src/feature/../main.py                      --  --  --  --  --  --  --  --  --
src/feature/../../company/org.yaml          --  --  --  --  --  --  --  --  --
tests/test_api.py                           --  --  --  --  rw  --  --  rw  --
tests/frontend/ui.test.ts                   --  --  --  --  rw  rw  --  rw  --
reports/qa/week.md                          r-  --  --  --  --  --  --  rw  --
docs/prd/login.md                           --  --  --  rw  --  r-  --  --  r-
company/org.yaml                            r-  --  rw  --  --  --  --  --  --
docker-compose.yml                          --  --  --  --  --  --  rw  --  --
"""

# An issuer puts into workspace_scope what the assignee's role is explicitly forbidden: (role,
# scope, path, outcome). The prohibition wins (Spec: files 2).
FORBIDDEN_IN_SCOPE = (
    (BACKEND, "company/", "company/org.yaml", "--"),
    (BACKEND, "company/", "company/chain-of-command.yaml", "--"),
    (FRONTEND, "company/", "company/org.yaml", "--"),
    (QA, "company/", "company/org.yaml", "--"),
    (IT, "company/", "company/org.yaml", "--"),
    (IT, "company/agents/", "company/agents/backend_worker.md", "--"),
    (IT, "reports/hr/", "reports/hr/week.md", "--"),
    (DEVOPS, "company/", "company/org.yaml", "--"),
    (DEVOPS, "src/", "src/main.py", "--"),
    (RESEARCH, "src/", "src/main.py", "--"),
    (CEO, "src/", "src/main.py", "--"),
    (HR, "src/", "src/main.py", "--"),
    (HR, "reports/tech/", "reports/tech/week.md", "--"),
    (HR, "equipment/", "equipment/tools.yaml", "--"),
    (PM, "src/", "src/main.py", "--"),
    (PM, "company/", "company/org.yaml", "--"),
    (BACKEND, ".github/", ".github/workflows/ci.yml", "--"),
    (BACKEND, "docker/", "docker/compose.prod.yml", "--"),
    (BACKEND, "docker-compose.yml", "docker-compose.yml", "--"),
    (FRONTEND, ".github/", ".github/workflows/ci.yml", "--"),
    (FRONTEND, "docker-compose.yml", "docker-compose.yml", "--"),
    (BACKEND, "agents/", "agents/frontend_worker/workspace/ui.ts", "--"),
    (BACKEND, "agents/", "agents/qa_worker/notes.md", "--"),
    (BACKEND, "agents/", "agents/ceo/notes/decision.md", "--"),
    (BACKEND, "agents/", "agents/backend_worker/draft.py", "rw"),
    (FRONTEND, "agents/", "agents/backend_worker/workspace/app.py", "--"),
    (FRONTEND, "backend/", "backend/app.py", "--"),
    (FRONTEND, "config/", "config/database.yml", "--"),
    (QA, "src/", "src/main.py", "r-"),
    (QA, ".github/", ".github/workflows/ci.yml", "r-"),
    (IT, "src/", "src/main.py", "r-"),
)


def _lines(text: str, scope: tuple[str, ...]) -> list[tuple[str, str, tuple[str, ...], str]]:
    return [
        (role, path, scope, cell)
        for path, *cells in (line.split() for line in text.strip().splitlines()[1:])
        for role, cell in zip(AGENTS, cells, strict=True)
    ]


def table() -> list[tuple[str, str, tuple[str, ...], str]]:
    """Every (role, path, contract scope, `rw` | `r-` | `--`)."""
    forbidden = [(role, path, (scope,), cell) for role, scope, path, cell in FORBIDDEN_IN_SCOPE]
    return _lines(PLAIN, ()) + _lines(UNDER_CONTRACT, SCOPE) + forbidden
