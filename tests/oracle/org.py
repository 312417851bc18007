"""The NEXUS company, by hand (Spec: organisation 6, organisation 5, organisation 19).

Nothing in this folder is derived from the packs: a pack that is wrong must not make its own oracle.
"""

CEO, IT, HR, PM = "ceo", "it_manager", "hr_manager", "product_manager"
BACKEND, FRONTEND, DEVOPS = "backend_worker", "frontend_worker", "devops_worker"
QA, RESEARCH = "qa_worker", "research_worker"
BOARD = "board"

# In the order of the columns of Spec: tools 4, mail 8.
AGENTS = (CEO, IT, HR, PM, BACKEND, FRONTEND, DEVOPS, QA, RESEARCH)
MANAGERS = (IT, HR, PM)
WORKERS = (BACKEND, FRONTEND, DEVOPS, QA, RESEARCH)

# agent: (level, kind, direct superior, co-managers). CEO and workers both execute: the CEO
# executes decisions, workers execute work, so the packs tell them apart.
CHAIN = {
    CEO: (1, "executive", BOARD, ()),
    IT: (2, "manager", CEO, ()),
    HR: (2, "manager", CEO, ()),
    PM: (2, "manager", CEO, ()),
    BACKEND: (3, "worker", IT, ()),
    FRONTEND: (3, "worker", IT, (PM,)),
    DEVOPS: (3, "worker", IT, ()),
    QA: (3, "worker", IT, ()),
    RESEARCH: (3, "worker", PM, ()),
}

ALIASES = {
    "hr_lead": HR,
    "hr.manager": HR,
    "it_admin": IT,
    "it.manager": IT,
    "eng_manager": IT,
    "pm": PM,
    "qa_lead": QA,
    "frontend_dev": FRONTEND,
    "backend_dev": BACKEND,
    "devops": DEVOPS,
}

# These have no holder (Spec: organisation 19): they are hired when they are needed.
NOT_HIRED = ("recruiter", "sec_analyst", "designer", "exec_assistant")
